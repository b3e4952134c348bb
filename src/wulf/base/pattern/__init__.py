"""Patterns: programs described as tasks over a graph, and what each rank of them does.

`language` reads the text of a pattern, `distributions` draws what is drawn, `graph` knows who sends to whom, and
`operations` writes all of it down as a tracer would have, what `steps`, `exchanges` and `ordered` do by what `ranks`
takes down. `shape` says what is drawn of it.
"""
