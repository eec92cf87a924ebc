from openpyxl import Workbook, load_workbook

book = Workbook()
sheet = book.active
sheet.append(["city", "people"])
sheet.append(["Graz", 300])
sheet["B3"] = "=SUM(B2:B2)"
book.save("out/cities.xlsx")
print([[cell.value for cell in row] for row in load_workbook("out/cities.xlsx").active.rows])
