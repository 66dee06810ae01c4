"""Implements `spark.read.format("odradek")` and `spark.readStream` on top of reading/."""
