deploy :fleet, pool: "tank" do
  replicate :models do
  end
  replicate :jobs do
    from :server
  end
  replicate :data
  replicate do
  end
end
