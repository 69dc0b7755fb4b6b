deploy :fleet do
  node :server
    gpu "A100"
  end
end
