"""guide_blocks.py GUIDE - write out the examples of a guide: each block of code whose first line names a file (# NAME,
// NAME, /* NAME) into that file, and the shell blocks, in their order, into `script`."""
import re
import sys


def main(path):
    with open(path, encoding="utf-8") as file:
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", file.read(), re.M | re.S)
    script = []
    for language, text in blocks:
        name = re.match(r"(?:#|//|/\*) ([\w.-]+\.\w+)\b", text)
        if language == "sh":
            script.append(text)
        elif name:
            with open(name[1], "w", encoding="utf-8") as file:
                file.write(text)
        else:
            sys.exit("%s: a block of %s names no file in its first line" % (path, language))
    if not script and blocks:
        sys.exit("%s: nothing runs its examples" % path)
    with open("script", "w", encoding="utf-8") as file:
        file.write("".join(script))


main(sys.argv[1])
