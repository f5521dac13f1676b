"""Simulated machines: nodes in separate namespaces, all inside one namespace that ends as a whole. Linux only. Importing this
package imports no other module."""
