"""Threads, processes, clusters, compiled kernels, progress."""
