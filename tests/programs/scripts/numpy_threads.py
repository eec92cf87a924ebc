from concurrent.futures import ThreadPoolExecutor

import numpy

numbers = numpy.random.default_rng(7).random((300, 300))
with ThreadPoolExecutor(4) as pool:
    products = list(pool.map(lambda n: float((numbers @ numbers.T)[n, n]), range(8)))
print([round(p, 6) for p in products], round(float(numpy.linalg.svd(numbers, compute_uv=False)[0]), 6))
