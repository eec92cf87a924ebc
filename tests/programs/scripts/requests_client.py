import json
import sys
from concurrent.futures import ThreadPoolExecutor

import requests

URL = f"http://127.0.0.1:{json.loads(sys.argv[1])['http']}"

with requests.Session() as session:
    session.trust_env = False
    print(session.get(URL + "/hello", timeout=10).text, len(session.get(URL + "/large", timeout=10).content))
    with ThreadPoolExecutor(8) as pool:
        print(list(pool.map(lambda _: session.get(URL + "/hello", timeout=10).text, range(16))))
