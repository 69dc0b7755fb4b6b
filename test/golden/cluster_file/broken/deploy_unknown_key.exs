deploy :fleet, pol: "tank" do
end
