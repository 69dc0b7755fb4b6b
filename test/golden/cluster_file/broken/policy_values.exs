deploy :fleet, pool: "tank" do
  node :server
  node :laptop
  replicate :models do
    from :server
    to :laptop
    every 15
    max_rate "200"
    keep 3
  end
end
