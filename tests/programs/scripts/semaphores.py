"""multiprocessing with POSIX semaphores: locks, a queue, a pool."""

import multiprocessing as mp


def square(n: int) -> int:
    return n * n


def count(total, lock, queue) -> None:  # type: ignore[no-untyped-def]
    for _ in range(100):
        with lock:
            total.value += 1
    queue.put("done")


if __name__ == "__main__":
    context = mp.get_context("fork")
    total, lock, queue, gate = context.Value("i", 0), context.Lock(), context.Queue(), context.BoundedSemaphore(2)
    workers = [context.Process(target=count, args=(total, lock, queue)) for _ in range(3)]
    for worker in workers:
        worker.start()
    said = [queue.get(timeout=20) for _ in workers]
    for worker in workers:
        worker.join()
    with gate, context.Pool(2) as pool:
        print(total.value, said, pool.map(square, range(10)))
