"""What semmem is made of, package by package: ``make audit``. No network is asked.

``python -m tests.audit`` ends with one line of numbers, and exit status 1 when something is not as it is listed.
"""
