deploy :fleet, pool: "tank" do
  node :server
  node :laptop
  replicate :models do
    from :server
    to :laptop
    filter "quantized == q8_0"
  end
end
