deploy :fleet, pol: "tank" do
  nod :server
  node :laptop do
    gpu "RTX 3080", vram: ten
    lables ["a"]
  end

  job :train do
    run "x
    priority 1000
    timeout 3
  end

  replicate :models do
    from :laptop
    to [:laptop,
    filter "size_gb <"
  end
end
