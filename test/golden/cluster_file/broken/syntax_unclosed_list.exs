deploy :fleet, pool: "tank" do
  node :server
  node :laptop
  replicate :models do
    from :server
    to [:laptop, :workstation
    every "15 minutes"
  end
end
