"""From a graph to the records that the runtime carries out: see README.md."""
