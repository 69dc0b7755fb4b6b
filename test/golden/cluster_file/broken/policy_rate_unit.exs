deploy :fleet, pool: "tank" do
  node :server
  node :laptop
  replicate :models do
    from :server
    to :laptop
    max_rate "200 MB"
  end
end
