"""Functions with names that a terminal, or a text of lines and fields, may stumble over."""
import os
import random
import types

NAMES = ("größe", "函数", "\U00020000", "x" * 1000, "", "semi;colon", "new\nline", "\x1b[31mred",
         "tab\tand space 7", "\x9b31m", "\ud800", "nul\0inside")


def spin():
    x = 1
    for i in range(20000):
        x = (x * 3 + i) & 0xFFFF


def called(name):
    fields = {"co_name": name, "co_filename": f"of {name[:9]}.py"}
    if hasattr(spin.__code__, "co_qualname"):
        fields["co_qualname"] = name
    return types.FunctionType(spin.__code__.replace(**fields), globals())


functions = [called(name) for name in NAMES]
print("ready", os.getpid(), flush=True)
# In no fixed order: nothing to fall into step with.
while True:
    functions[int(random.random() * len(functions))]()
