deploy :fleet, pool: "tank" do
  node :server
  node :"zed@server"
  model :llama
  model :llama
  job :train
  job :train
  dataset "datasets/a"
  dataset "datasets/a"
  replicate :models do
    from :server
    to :x
  end
  replicate :models do
    from :server
    to :y
  end
end
