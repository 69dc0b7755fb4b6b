deploy :fleet do
  node :a, address: "10.0.0.5", do: gpu "A100", vram: 80
  node(:b, do: dataset("models"))
  node :c, do: (
    # two of them
    gpu "L4", vram: 24, count: 2

    labels ["quiet"]
  )
  job :d, do: nil
  job :e, do: ()
  model :f, do: version "1"
end
