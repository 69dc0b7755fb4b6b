deploy :fleet do
  node :a do
    gpu "A", vram: 24.0
    gpu "B", vram: 22.5
    gpu "C", vram: "24564MiB", count: 0_8
    gpu "D", vram: "1.5 TiB"
    gpu "E", vram: "24 GB"
    gpu "F", vram: 2.4e1
  end
  job :b do
    priority -100
    retries 1_000
    requires vram: 1_0, cuda: 12.10, driver: 550, arch: [8.0, "gfx1100"]
  end
  job :c do
    priority(-1)
    retries 0
    copies 0
  end
end
