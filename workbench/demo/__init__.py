"""A corpus that every machine has, with judged questions: try the workbench in a minute, and see which mode wins where.

`data` finds the data that the project ships, `files` writes the demo's files from the Python that runs, `tour` indexes
them, asks three questions in every mode and checks all modes against the judged questions.
"""
