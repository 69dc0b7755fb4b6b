deploy :fleet do
	node :server do
		gpu	"A100",	vram: 80	# big
	end
end
