"""The op set on numpy (the tape) and on torch, and the checks of every gradient."""
