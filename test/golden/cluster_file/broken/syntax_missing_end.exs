deploy :fleet do
  node :server do
    gpu "A100"
  node :laptop do
    gpu "RTX 3080"
  end
end
