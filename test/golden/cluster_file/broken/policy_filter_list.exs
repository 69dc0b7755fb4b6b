deploy :fleet, pool: "tank" do
  node :server
  node :laptop
  replicate :models do
    from :server
    to :laptop
    filter "version in \"1.0\""
  end
end
