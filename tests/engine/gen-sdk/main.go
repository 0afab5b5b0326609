// Generates a package's SDK with the engine's own generators: TypeScript, Python and Go. The engine's command for it asks a
// language host, and those that can be had from the module proxy are older than that question.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	gogen "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

// A package of this project refers to no other one, so none is ever loaded.
type noOthers struct{ schema.ReferenceLoader }

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: gen-sdk SCHEMA nodejs|python|go FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func generate(schemaFile, language, folder string) error {
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		return err
	}
	var spec schema.PackageSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	pkg, err := schema.ImportSpec(spec, nil, noOthers{}, schema.ValidationOptions{})
	if err != nil {
		return err
	}
	var files map[string][]byte
	switch language {
	case "nodejs":
		files, err = nodejs.GeneratePackage("tests/engine", pkg, nil, nil, false, noOthers{})
	case "python":
		files, err = python.GeneratePackage("tests/engine", pkg, nil, noOthers{})
	case "go":
		files, err = gogen.GeneratePackage("tests/engine", pkg, nil)
	default:
		err = fmt.Errorf("no generator for %s", language)
	}
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
