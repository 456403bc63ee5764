"""Writes a file as an array of C: embed.py FILE NAME OUTPUT.c"""
import sys

path, name, output = sys.argv[1:]
with open(path, "rb") as f:
    data = f.read()
with open(output, "w", encoding="ascii") as f:
    f.write('#include "java/jvmti/place.h"\n\n')
    f.write(f"const unsigned char {name}[] = {{\n")
    for at in range(0, len(data), 16):
        f.write("\t" + " ".join(f"0x{byte:02x}," for byte in data[at:at + 16]) + "\n")
    f.write("};\n")
    f.write(f"const size_t {name}_len = sizeof({name});\n")
