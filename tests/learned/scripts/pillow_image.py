from PIL import Image, ImageDraw, ImageFilter

image = Image.new("RGB", (64, 64), "white")
ImageDraw.Draw(image).ellipse((8, 8, 56, 56), fill="teal")
image.filter(ImageFilter.GaussianBlur(1)).resize((32, 32)).save("out/dot.png")
with Image.open("out/dot.png") as read:
    read.load()
    print(read.format, read.size, read.getpixel((16, 16)))
