"""`spark.read.format("odradek")` and `spark.readStream`: Spark's faces of reading/."""
