deploy :fleet, pool: "tank", do: (node :a, do: gpu("A100", vram: 80); job :b, do: run("true"))
