deploy :fleet do
  nod :server
end
