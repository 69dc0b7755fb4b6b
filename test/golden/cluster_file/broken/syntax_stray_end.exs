deploy :fleet do
  node :server
  end
  node :laptop
end
