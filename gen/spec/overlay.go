package spec

import (
	"fmt"
	"os"

	"github.com/speakeasy-api/openapi/overlay"
	"gopkg.in/yaml.v3"
)

// overlaid applies OpenAPI overlays, one after the other, to the text of a
// spec. All that the overlays leave alone keeps its place, and so does the code.
func overlaid(spec []byte, paths []string) ([]byte, error) {
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("gen: cannot read the overlay, check its path: %w", err)
		}
		var o overlay.Overlay
		if err := yaml.Unmarshal(data, &o); err != nil {
			return nil, fmt.Errorf("gen: %s is not YAML, correct it: %w", path, err)
		}
		if err := o.Validate(); err != nil {
			return nil, fmt.Errorf("gen: %s is not an OpenAPI overlay, correct it: %w", path, err)
		}
		if spec, err = applied(&o, spec); err != nil {
			return nil, fmt.Errorf("gen: %s does not fit the spec, correct it: %w", path, err)
		}
	}
	return spec, nil
}

func applied(o *overlay.Overlay, spec []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(spec, &doc); err != nil {
		return nil, err
	}
	if _, err := o.ApplyToStrict(&doc); err != nil { // strict: each target exists
		return nil, err
	}
	return yaml.Marshal(&doc)
}
