deploy :fleet, pool: "/tank/../etc" do
end
