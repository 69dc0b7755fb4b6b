#!/usr/bin/env -S python3 -I -S
"""Plays a recorded tool: linked or copied under the tool's name into a folder of PATH.

Beside it lies <name>.record.json: {"columns": [...] or null, "mode": ..., "text": ..., "status": ...,
"stderr": ..., "asks": FILE}. A record of nvidia-smi's CSV answers whatever columns are asked for, with
[N/A] for those that it lacks; any other record answers the question that it was recorded from, and
everything else fails as the tool would. Every call is noted in `asks`.
"""

import json
import os
import sys


def rows_of(record):
    """The recorded rows as {column: text}; a row of another shape stays text."""
    columns = record["columns"]
    for line in record["text"].replace("\r", "").replace("\n,", ",").split("\n"):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(", ", len(columns) - 1)]
        yield dict(zip(columns, cells)) if len(cells) == len(columns) else line


def answer_columns(record, asked):
    names = {"gpu_name": "name", "gpu_bus_id": "pci.bus_id", "gpu_uuid": "uuid"}
    for row in rows_of(record):
        if isinstance(row, str):
            print(row)
            continue
        plain = {names.get(key, key): value for key, value in row.items()}
        lost = next((v for v in plain.values() if v in ("[GPU is lost]", "[GPU requires reset]")), "[N/A]")
        answer = ", ".join(plain.get(names.get(column, column), lost) for column in asked)
        # A record that was torn apart by pipes is answered torn.
        print(answer.replace(", ", "\n, ", 3) if "\n," in record["text"] else answer)


def main():
    with open(sys.argv[0] + ".record.json", encoding="utf-8") as file:
        record = json.load(file)
    with open(record["asks"], "a", encoding="utf-8") as asks:
        asks.write(os.path.basename(sys.argv[0]) + " " + " ".join(sys.argv[1:]) + "\n")
    if record["mode"] == "hang":
        os.read(os.pipe()[0], 1)  # nobody ever writes
    sys.stderr.write(record.get("stderr", ""))
    arguments = sys.argv[1:]
    query = next((a for a in arguments if a.startswith("--query-gpu=")), None)
    if record["mode"] == "csv" and query:
        answer_columns(record, query.split("=", 1)[1].split(","))
        return record["status"]
    # "always": an error sentence, or a tool that answers one thing whatever is asked.
    if record["mode"] == "always" or any(a.startswith(record["mode"]) for a in arguments):
        sys.stdout.write(record["text"])
        return record["status"]
    print("Invalid combination of input arguments. Please run '-h' for help.")
    return 1


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
