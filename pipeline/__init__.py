"""The data pipeline on PySpark (comes with a later release)."""

if __name__ != "odradek.pipeline":
    raise ImportError("import odradek.pipeline, not pipeline")
