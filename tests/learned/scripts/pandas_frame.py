from pathlib import Path

import pandas

frame = pandas.read_csv("data/sales.csv")
total = frame.groupby("city")["amount"].sum().sort_index()
print(total.to_dict())
total.to_csv("out/total.csv")
print(Path("out/total.csv").read_text())
