deploy :fleet do
  # safe ‮ evil
  node :server
end
