"""What the browser's pages ask of Python: functions that take and give plain dicts.

They run under Pyodide in web/worker.js, without numpy, files or the network; the tests call them
as they are.
"""
