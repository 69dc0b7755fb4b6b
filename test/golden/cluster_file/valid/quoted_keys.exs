deploy :fleet, "pool": "tank" do
  node :a do
    gpu "A100", "vram": 80, "count": 2
  end
  job :b do
    env "PATH": "/bin", HOME: "", _x: "1"
  end
end
