"""The large parts of a generation on Milvus: texts, words and vectors. Chosen by the setting `store`."""
