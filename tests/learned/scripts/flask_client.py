from flask import Flask, jsonify, render_template, request

app = Flask(__name__, template_folder="data")


@app.get("/hello/<name>")
def hello(name):
    return jsonify(greeting=f"hello {name}", shout=request.args.get("shout"))


@app.get("/page")
def page():
    return render_template("page.html", title="a page")


client = app.test_client()
print(client.get("/hello/you?shout=1").json, client.get("/nowhere").status_code)
print(client.get("/page").text)
