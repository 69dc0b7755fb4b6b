deploy :fleet, pool: "tank" do
  node :server
  node :laptop
  replicate :models do
    from :server
    to :laptop
    filter "size_gb = 20"
  end
end
