deploy :fleet, pool: "tank" do
  node :server do
    labels []
    dataset "models"
    dataset "models"
    dataset :jobs
    dataset "a", "b"
  end
end
