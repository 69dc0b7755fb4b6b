deploy :fleet do
  node :server
end
