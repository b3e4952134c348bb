"""Traces of MPI programs as files: their layout, how they are read and written.

The layout is that of ``native/trace/format.h``; the tracer and the replay, in C and C++, are its other users.
"""
