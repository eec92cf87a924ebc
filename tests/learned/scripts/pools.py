import concurrent.futures
import multiprocessing


def square(n):
    return n * n


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(square, range(4)))
    with concurrent.futures.ProcessPoolExecutor(2) as executor:
        print(sum(executor.map(square, range(4))))
    queue = multiprocessing.Queue()
    process = multiprocessing.Process(target=queue.put, args=("done",))
    process.start()
    print(queue.get())
    process.join()
