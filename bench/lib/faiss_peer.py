# An inverted file of faiss (Debian's python3-faiss) over a file of float32 rows and queries, on one thread:
#     faiss_peer.py ROWS DIMENSIONS N QUERIES ANSWERS RECALL
# ANSWERS: a JSON list of row numbers a line, the right answers. Prints one line of JSON for the fewest lists with which the recall is reached.
import json
import sys
import time

import faiss
import numpy

path, dimensions, n, n_queries, answers, target = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], float(sys.argv[6])
top_k = 10
numbers = numpy.fromfile(path, dtype=numpy.float32, count=(n + n_queries) * dimensions).reshape(-1, dimensions)
faiss.normalize_L2(numbers)
rows, queries = numbers[:n], numbers[n:]
truth = [set(json.loads(line)) for line in open(answers)]

began = time.monotonic()
n_lists = int(n ** 0.5)
index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimensions), dimensions, n_lists, faiss.METRIC_INNER_PRODUCT)
index.cp.niter = 10                     # its packaged BLAS is the slow reference
index.train(rows[:: max(1, n // (64 * n_lists))])
index.add(rows)
build_s = time.monotonic() - began
faiss.omp_set_num_threads(1)

for n_probes in (4, 8, 16, 32, 64, 128, 256, 512, 1024):
    index.nprobe = min(n_probes, n_lists)
    times, n_found = [], 0
    for i in range(n_queries):
        began = time.thread_time()
        _, found = index.search(queries[i : i + 1], top_k)
        times.append(time.thread_time() - began)
        n_found += len(truth[i] & set(found[0].tolist()))
    recall = n_found / (n_queries * top_k)
    if recall >= target or index.nprobe == n_lists:
        break
print(json.dumps({"ms": sorted(times)[len(times) // 2] * 1000, "recall": recall, "probes": index.nprobe, "build_s": build_s}))
