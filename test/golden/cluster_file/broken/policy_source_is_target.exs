deploy :fleet, pool: "tank" do
  node :server
  node :laptop
  replicate :models do
    from :server
    to [:laptop, :server]
  end
end
