; Likewise, for Guile and Chicken.
(define (spin n x) (if (= n 0) x (spin (- n 1) (modulo (* x 16807) 2147483647))))
(define (sixty x) (+ 1 (spin 600000 x)))
(define (thirty x) (+ 1 (spin 300000 x)))
(define (ten x) (+ 1 (spin 100000 x)))
(define finish (+ 3 (current-time)))
(let loop ((x 1)) (if (< (current-time) finish) (loop (ten (thirty (sixty x))))))
