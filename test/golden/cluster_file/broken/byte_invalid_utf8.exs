deploy :fleet do
  node :servér
  # café
end
