deploy :fleet, pool: "tank" do
  if true do
    node :server
  end
  for n <- [:a, :b] do
    node n
  end
end
