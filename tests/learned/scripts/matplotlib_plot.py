from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
axes.plot([1, 2, 3], [1, 4, 9], label="squares")
axes.set_title("growth")
axes.legend()
figure.savefig("out/plot.png", metadata={"Software": None})
print(Path("out/plot.png").read_bytes()[:8])
